"""Lists: their columns, declared once for page, file and command, and the sources that give their rows page by page."""
