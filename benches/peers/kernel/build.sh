#!/bin/sh
# build.sh FOLDER: builds Linux 6.1 as a program and the traffic for it into FOLDER, in about ten minutes.
set -e
here=$(dirname "$(realpath "$0")")
mkdir -p "$1"
cd "$1"
[ -d linux-source-6.1 ] || tar xf /usr/src/linux-source-6.1.tar.xz
cc -O2 -static -o traffic "$here/traffic.c"
cd linux-source-6.1
make ARCH=um defconfig
cat "$here/uml.config" >> .config
make ARCH=um olddefconfig
make ARCH=um -j"$(nproc)" linux
cp linux ..
