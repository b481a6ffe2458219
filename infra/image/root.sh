#!/bin/sh
# The base image, brought to what a step needs, in /image: no installer, no setuid program, no
# caches and manuals, bytecode of the standard library, a name for uid 10001. Run by the Dockerfile.
set -eu

# Installers. dpkg has to know, lest its database (which scanners and the SBOM read) name them still.
if command -v dpkg > /dev/null; then
    installers='python3-pip python3-pip-whl python3-venv python3.11-venv python3-setuptools
        python3-setuptools-whl python3-pkg-resources python3-wheel'
    # shellcheck disable=SC2086
    there=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $installers 2> /dev/null \
        | sed -n 's/^installed //p')
    # shellcheck disable=SC2086
    [ -z "$there" ] || dpkg --purge $there > /dev/null
fi
library=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
packages=$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for name in pip setuptools wheel pkg_resources _distutils_hack distutils-precedence; do
    rm -rf "$packages/$name" "$packages/$name"-*.dist-info "$packages/$name.pth"
done
programs=$(python3 -c 'import sysconfig; print(sysconfig.get_path("scripts"))')
rm -rf "$library/ensurepip" "$programs"/pip* "$programs"/wheel

# What nobody reads in a container; licences stay.
find /usr/share/doc -type f ! -name copyright -delete
find /usr/share/doc -type l -delete
find /usr/share/doc -type d -empty -delete
rm -rf /usr/share/man /usr/share/info /usr/share/locale /usr/share/lintian /usr/share/python-wheels
rm -rf /var/cache/* /var/log/* /var/lib/apt/lists/* /var/lib/dpkg/*-old /var/lib/systemd
rm -f /etc/*- /etc/machine-id /var/lib/dbus/machine-id

# Nothing here has to become another user.
find / -xdev -type f -perm /6000 -exec chmod a-s {} +

# A name for the uid: getpass.getuser(), which torch calls, fails without one.
echo 'evertrain:x:10001:' >> /etc/group
echo 'evertrain:x:10001:10001::/tmp:/usr/sbin/nologin' >> /etc/passwd

# The root file system is read-only, so what is not compiled now is compiled at each start; files'
# times are set below, so bytecode must be known by its source's content. (-B: what compiles must
# not leave bytecode of its own kind first.)
find "$library" -name __pycache__ -prune -exec rm -rf {} +
PYTHONHASHSEED=0 python3 -B -S -E -m compileall -q -f -j 0 --invalidation-mode checked-hash \
    -x '/(test|tests|lib2to3)/' "$library" > /dev/null || true

# A copy without what the build has mounted (/etc/resolv.conf, for one, is the host's).
mkdir /image
tar --one-file-system --exclude=./image --exclude=./dev/* --exclude=./proc/* --exclude=./sys/* \
    --exclude=./run/* --exclude=./tmp/* --exclude=./root/* --exclude=./var/tmp/* \
    --exclude=./etc/resolv.conf --exclude=./etc/hosts --exclude=./etc/hostname \
    --exclude=./etc/mtab --exclude=./.dockerenv \
    -C / -c . | tar -x -C /image
find /image -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
