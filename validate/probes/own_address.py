"""Say how the name of a container comes to lead to its own address."""

from validate.remedy import in_shell

OWN_ADDRESS = in_shell(
    "own=$(hostname -I | cut -d' ' -f1); "
    '[ "$own" ] && { echo "$own $(hostname)"; cat /etc/hosts; } > /run/hosts && '
    "cat /run/hosts > /etc/hosts",
    look="cat /etc/hosts",
)
"""The line comes first, because the first one counts. The engine mounts the file: it cannot be
replaced by another one, as `sed -i` does.
"""
