"""Order the layers of a family, and say what they cost.

`layer_order.layer_orders` finds the cheapest order, `cost` its seconds and bytes, `time_left` what
is left of a build that runs.
"""
