# Sourced by the build steps that download, from a mount that is in no layer. The builder puts
# ca.crt and pip.conf beside this file where the host has such settings; proxies come as build args.
export DEBIAN_FRONTEND=noninteractive
export PIP_BREAK_SYSTEM_PACKAGES=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
# Python compiles what is installed into files that say no time: the same bytes for the same source.
export SOURCE_DATE_EPOCH=315532800
if [ -s /mnt/ca.crt ]; then
  export PIP_CERT=/mnt/ca.crt SSL_CERT_FILE=/mnt/ca.crt
  export REQUESTS_CA_BUNDLE=/mnt/ca.crt CURL_CA_BUNDLE=/mnt/ca.crt
fi
if [ -s /mnt/apt.conf ]; then export APT_CONFIG=/mnt/apt.conf; fi
if [ -s /mnt/pip.conf ]; then export PIP_CONFIG_FILE=/mnt/pip.conf; fi
