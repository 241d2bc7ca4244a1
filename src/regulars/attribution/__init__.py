"""Attribution: which text a purchase is credited to, and how much customers bought because of texts.

Which return belongs to which purchase is a rule of sales, because the analysis process needs it too:
`regulars.sales.returned_lines`.
"""
