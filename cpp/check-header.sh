#!/usr/bin/env bash
# Compiles rnet.h alone, with all of its initialisers, as C and C++ with each compiler that is installed:
# cpp/check-header.sh [INCLUDE-DIR]
set -euo pipefail
cd "$(dirname "$0")/.."
include=${1:-crates/rnet-c/include}
warnings=(-Wall -Wextra -Wpedantic -Werror)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# As C and C++: each initialiser of the header, whose macros are lines `#define RNET_X_INIT RNET_INIT(rnet_x)`.
{
    echo '#include <rnet.h>'
    echo 'int main(void) {'
    sed -nE 's/^#define (RNET_\w+_INIT) RNET_INIT\((\w+)\)$/    { \2 made = \1; if (made.struct_size != sizeof made) return 1; }/p' \
        "$include/rnet.h"
    echo '    return RNET_OK;'
    echo '}'
} > "$work/use.c"
# Some programs include headers of C so, although rnet.h has its own extern "C".
{ echo 'extern "C" {' && sed '1a }' "$work/use.c"; } > "$work/use.cpp"
if ! grep -q ' made = ' "$work/use.c"; then
    echo "$include/rnet.h has no initialisers" >&2
    exit 1
fi

checked=
for compiler in gcc:c11 gcc:c17 clang:c11 clang:c17 g++:c++17 g++:c++20 clang++:c++17 clang++:c++20; do
    name=${compiler%:*} standard=${compiler#*:}
    command -v "$name" > /dev/null || continue
    file=$work/use.c
    [[ $standard == c++* ]] && file=$work/use.cpp
    "$name" "-std=$standard" "${warnings[@]}" -I"$include" "$file" -o "$work/use"
    "$work/use"
    checked+=" $name -std=$standard,"
done
if [[ -z $checked ]]; then
    echo "no C compiler is installed" >&2
    exit 1
fi
echo "rnet.h compiles alone:${checked%,}"
