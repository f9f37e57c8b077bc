#!/usr/bin/env bash
# Compares the binary interface of the C library with its committed description, crates/rnet-c/abi/librnet.abi.
#
#   abi.sh LIBRARIES     of a folder that scripts/librnet.sh has written
#   abi.sh --write       describes the header
#
# The description is made of the header: libabigail reads the debug information of a library that has each function
# of rnet.h with an empty body. Opaque types stay opaque, and the Rust compiler has no influence. The library itself
# is compared by its symbols.
set -euo pipefail
[ $# -eq 1 ] || { sed -n '4,5s/^# \?//p' "$0" >&2; exit 2; }
if [ "$1" != --write ]; then library=$(realpath "$1")/librnet.so.1; fi
cd "$(dirname "$0")/.."
readonly map=crates/rnet-c/rnet.map include=crates/rnet-c/include description=crates/rnet-c/abi/librnet.abi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# gcc lists the declarations of functions: "/* rnet.h:7:NC */ extern void rnet_node_free (struct rnet_node *);"
echo '#include <rnet.h>' >"$work/list.c"
gcc -std=c11 -fsyntax-only -I"$include" -aux-info "$work/declared" "$work/list.c"
sed -n 's|^/\* [^ ]*rnet\.h:[0-9]*:NC \*/ extern \(.*\);.*|\1|p' "$work/declared" >"$work/functions"
# Options have numbers of enums: so that their values are described, each is the argument of a function.
sed -nE 's/^typedef enum (rnet_\w+) .*/void rnet_describe_\1 (enum \1)/p' "$include/rnet.h" >"$work/enums"
{
    cat "$work/list.c"
    sed 's/$/ { __builtin_trap(); }/' "$work/functions" "$work/enums"
} >"$work/rnet.c"
gcc -std=c2x -g -fPIC -shared -I"$include" -Wl,-soname,librnet.so.1 -Wl,--version-script="$map" \
    -o "$work/librnet.so.1" "$work/rnet.c"

if [ "$1" = --write ]; then
    mkdir -p "${description%/*}"
    abidw --no-show-locs --no-comp-dir-path --no-corpus-path --no-architecture --no-elf-needed \
        --out-file "$description" "$work/librnet.so.1"
    exit
fi

names() { sed -E 's/.*\b(rnet_[a-z0-9_]+) \(.*/\1/' "$work/functions" | sort; }
exported() { nm --dynamic --defined-only --format=posix "$library" | sed -E 's/@.*//; s/ .*//' | grep -v '^RNET_1$' | sort; }
if ! diff <(names) <(exported) >"$work/symbols"; then
    echo "abi: functions that only rnet.h (<) or only $library (>) has:" >&2
    cat "$work/symbols" >&2
    exit 1
fi

code=0
abidiff --no-architecture "$description" "$work/librnet.so.1" || code=$?
case $code in
0) echo "$(wc -l <"$work/functions") functions are as in $description" ;;
4) echo "abi: if programs of before still work (only new functions, or fields at the end of structs that begin with
struct_size), write the new description: scripts/abi.sh --write. Otherwise the soname has to change." >&2 ;;
*) echo "abi: incompatible with programs that are linked with librnet.so.1 (abidiff exited with $code)" >&2 ;;
esac
exit $code
