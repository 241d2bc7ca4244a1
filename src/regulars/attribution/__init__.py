"""Attribution: which text a purchase is credited to, and how much customers bought because of texts.

The sales package matches returns with purchases (`regulars.sales.returned_lines`), because the analysis process needs
the same rule.
"""
