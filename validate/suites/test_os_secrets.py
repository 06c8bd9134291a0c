"""Check that nothing secret travels in the image: what of it a container can see."""

from typing import List

from validate.check import check, fail
from validate.fixtures import Measure, Situation
from validate.probes import secrets, ssh
from validate.remedy import NO_REMEDY, in_image, in_shell

IN_THE_STEP = "imagegen build   # without it; revoke what was published, mount a new one at start"

MOST_NAMED = 4


@check(
    "os.secrets",
    "no credential, token or private key travels in the image",
    cause=(
        "it was copied in, or made, while the image was built: everyone who pulls the image has it"
    ),
    remedy=in_image(IN_THE_STEP),
)
def test_secrets(image: Situation, measure: Measure) -> None:
    """known credential files; private keys, tokens of known kinds, passwords in settings and in
    addresses, in files up to 256 KiB, also compressed or in base64. In every folder of / that is
    not the distribution's own, in /usr/local, /usr/src, /run/secrets, /mnt, /media, and in www,
    opt, lib, backups, spool and tmp of /var; mounts and Python packages are left out"""
    # The ssh suite checks SSH keys: it knows those that the entrypoint makes.
    owned = ssh.host_keys(image.root) + ssh.user_keys(image.root)
    found = secrets.secrets(image.root, owned if image.expected.has("ssh") else ())
    measure("none in {}".format(" ".join(secrets.places(image.root))))
    if found:
        line = secrets.take_out(found)
        remedy = in_shell(line + "   # then build without it, and revoke it") if line else NO_REMEDY
        fail(_named(found), remedy=remedy)


@check(
    "os.secrets-env",
    "no variable holds a password, token or key",
    severity="warn",
    cause="it was set in the image (ENV, a build argument), or given at the launch, which is right",
    remedy=in_image(
        IN_THE_STEP,
        look="docker inspect --format '{{join .Config.Env \"\\n\"}}' IMAGE | cut -d= -f1",
    ),
)
def test_secrets_env(image: Situation, measure: Measure) -> None:
    """names such as *_TOKEN and *_PASSWORD, and values that are keys, tokens or addresses with a
    password; a container does not see who set a variable, `imagegen validate` does"""
    found = secrets.in_variables(image.env, image.expected.env)
    measure("{} variables".format(len(image.env)))
    if found:
        fail(_named(found))


def _named(found: List[secrets.Secret]) -> str:
    more = "; and {} more".format(len(found) - MOST_NAMED) if found[MOST_NAMED:] else ""
    return "; ".join(str(one) for one in found[:MOST_NAMED]) + more
