"""Make commands, manifests and scripts that start a training, from one description.

Others use `description.Description` and `launch.launched`.
"""
