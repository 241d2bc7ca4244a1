"""Looking at consent: the list, whether somebody might be texted at a moment and why, the certificate, the figures.

Owns the table `consent_figures`; all else it only reads.
"""
