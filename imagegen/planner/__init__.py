"""Order the layers of a family of images, and predict what they cost.

`layer_order.layer_orders` finds the cheapest order, `cost` its seconds and bytes, `plan` the state
of each cell and the steps to make, `time_left` what a build will take.
"""
