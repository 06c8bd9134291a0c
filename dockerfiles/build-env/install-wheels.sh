#!/bin/sh
# install-wheels.sh ARGUMENTS: what `python3 -m pip install ARGUMENTS` installs, in half the time. pip unpacks
# one wheel after the other on one core and then compiles what it unpacked (PyTorch with its CUDA libraries:
# 65 s, and 34 s this way, on two cores); uv unpacks them side by side. What uv unpacked stays in the cache
# mount, as pip's downloads do. Where uv is not to be had or does not get along with an index, pip installs.
set -eu
UV=0.13.9
place="$(mktemp -d)"
trap 'rm -rf "${place}"' EXIT

get_uv() {
  # uv asks interpreters of 3.8 and later alone.
  python3 -c 'import sys; sys.exit("Python is older than 3.8" if sys.version_info < (3, 8) else 0)' &&
    python3 -m pip install --quiet --cache-dir /media --no-deps --target "${place}" "uv==${UV}"
}

with_uv() {
  touch "${place}/before"
  TMPDIR="${place}" UV_CONFIG_FILE=/mnt/uv.toml "${place}/bin/uv" pip install \
    --python "$(command -v python3)" --break-system-packages --no-python-downloads \
    --cache-dir /media/uv --link-mode copy --no-progress "$@"
}

compiled() {
  # The folders with something new in them; as pip does, what cannot be compiled is left as it is.
  python3 -c 'import sysconfig; print(sysconfig.get_path("purelib")); print(sysconfig.get_path("platlib"))' |
    sort -u > "${place}/sites"
  while read -r site; do
    find "${site}" -mindepth 1 -maxdepth 1 -cnewer "${place}/before" ! -name __pycache__
  done < "${place}/sites" | sort | xargs -d "\n" -r python3 -W ignore -m compileall -qq -j 0 || true
}

# A locked build has no settings for uv: it takes what its page lists, by pip.
if test -s /mnt/uv.toml; then
  if ! get_uv 2> "${place}/why"; then
    echo "no uv here, pip installs in its place: $(tail -n 1 "${place}/why")"
  elif with_uv "$@"; then
    compiled
    exit
  else
    echo "uv could not, pip installs in its place"
  fi
fi
python3 -m pip install --cache-dir /media "$@"
