"""A virtual machine for an image: its root file system, a kernel, QEMU.

Others use `qemu.boot` and `guest_kernel.ensure_kernel`.
"""
