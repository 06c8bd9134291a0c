"""Boot a virtual machine for an image: its root file system, a kernel, QEMU.

Other rooms use `qemu.boot` and `guest_kernel.ensure_kernel`.
"""
