#!/usr/bin/env bash
# Builds the tests of the C and C++ API and runs them with the shared library, in the development profile.
#
#   test.sh                    each cpp/tests/test_*.cpp; also compiles each header alone, all of them in other
#                              modes and the examples, and runs the program of the first release
#   test.sh NAME...            only these tests: test.sh test_topics; built in target/c/test
#   test.sh --sanitize=LIST    the tests with address,undefined or with thread
#
# A sanitizer instruments the tests and the headers, not the library. AddressSanitizer shares the library's heap:
# it finds each use by C++ of memory that the library has freed, and leaks on both sides, but not accesses by the
# library itself. ThreadSanitizer finds races between callbacks and other threads. It does not see how the library
# synchronises them: see cpp/include/rnet/detail/tsan.hpp.
set -euo pipefail
cd "$(dirname "$0")/.."
sanitize=
case ${1-} in
--sanitize=*) sanitize=${1#*=} && shift ;;
-*) sed -n '4,7s/^# \?//p' "$0" >&2 && exit 2 ;;
esac
export lib=$PWD/target/c/lib out=$PWD/target/c/test${sanitize:+-${sanitize%%,*}}
# Before the compilers are set, because a change of CC would compile the C code of all dependencies again.
scripts/librnet.sh "$lib"
export CC=${CC:-gcc} CXX=${CXX:-g++}
rm -rf "$out"
mkdir -p "$out/protoc"

# All domains of the tests are removed at the end.
RNET_DIR=$(mktemp -d /dev/shm/rnet-cpp.XXXXXX)
export RNET_DIR RNET_STATE_DIR=$RNET_DIR/durable
unset RNET_DOMAIN RNET_GROUP RNET_NAMESPACE RNET_REMAP
trap 'rm -rf "$RNET_DIR"' EXIT
export ASAN_OPTIONS=detect_stack_use_after_return=1:fast_unwind_on_malloc=0 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=suppressions=$PWD/cpp/tests/tsan.supp

warnings="-Wall -Wextra -Wpedantic -Werror -Icrates/rnet-c/include -Icpp/include"
export c="$CC -std=c11 -O0 $warnings"
export cxx="$CXX -std=c++17 -O0 $warnings -isystem $out/protoc"
export link="-L$lib -lrnet -Wl,-rpath,$lib -pthread"
start=()
if [ -n "$sanitize" ]; then
    cxx+=" -g1 -fsanitize=$sanitize -fno-sanitize-recover=all -fno-omit-frame-pointer"
    # ThreadSanitizer needs a process without randomised addresses, and cannot follow threads of a forked child.
    if [ "$sanitize" = thread ]; then start=(setarch -R) && export CHECK_SKIP=fork; fi
fi
export start_with=${start[*]-}

# A test program: with the options that its first line names as CXXFLAGS=, and with the classes that protoc
# generates if it uses them.
program() {
    local source=cpp/tests/$1.cpp more=()
    if grep -qE '^#include.*(protobuf\.hpp|\.pb\.h)' "$source"; then more=($(find "$out/protoc" -name '*.o') -lprotobuf); fi
    $cxx $(sed -n '1s/.*CXXFLAGS=\([^ ]*\).*/\1/p' "$source") "$source" "${more[@]}" $link -o "$out/$1" &&
        $start_with timeout --kill-after=10 300 "$out/$1"
}
# Each header alone, so that they can be included in any order.
header() { echo "#include <$1>" | $cxx -fsyntax-only -x c++ -; }
# All headers with another option of the compiler.
headers() { find cpp/include/rnet -name '*.hpp' -printf '#include <rnet/%P>\n' | $cxx "$1" -fsyntax-only -x c++ -; }
# The examples have options with designated initialisers.
example() {
    local more=()
    if grep -q '<spdlog/' "$1"; then more=($(pkg-config --cflags --libs spdlog)); fi
    if grep -q '<Eigen/' "$1"; then more=(-isystem /usr/include/eigen3); fi
    if grep -q '<opencv2/' "$1"; then more=(-isystem /usr/include/opencv4 -lopencv_core); fi
    case $1 in
    *.c) $c "$1" $link -o "$out/${1//\//-}.out" ;;
    *) $cxx -std=c++20 "$1" "${more[@]}" $link -o "$out/${1//\//-}.out" ;;
    esac
}
# The header of the first release has the present functions, which do what its program expects.
first_release() {
    $CC -std=c11 -Wall -Wextra -Werror -Icrates/rnet-c/abi/first crates/rnet-c/abi/first/program.c $link -o "$out/first" &&
        timeout --kill-after=10 300 "$out/first"
}
# The C++ side of the conformance suite, which runs it with actors in other languages.
actor() { $cxx cpp/tests/conformance_actor.cpp $link -o "$out/conformance_actor"; }
# Runs one task, and prints its result, with its output if it has failed.
task() {
    local name=$* log
    log=$out/${name//[\/ ]/-}.log
    if "$@" >"$log" 2>&1; then
        printf 'ok      %s%s\n' "$name" "$(sed -n 's/^\([0-9]* tests\), 0 failed$/: \1/p' "$log")"
    else
        printf '%s\nFAILED  %s\n' "$(cat "$log")" "$name"
    fi
}
export -f program header headers example first_release actor task

for proto in cpp/tests/*.proto; do
    if [ ! -e "$proto" ]; then continue; fi
    name=$(basename "$proto" .proto)
    protoc --proto_path=cpp/tests --cpp_out="$out/protoc" "$proto"
    $CXX -std=c++17 -O0 -c "$out/protoc/$name.pb.cc" -o "$out/protoc/$name.o"
done

tasks() {
    if [ $# -gt 0 ]; then
        printf 'program %s\n' "$@"
        return
    fi
    # The longest first. The tests with two hosts are a part of `make test-net`, which builds rnet-link.
    ls -S cpp/tests | sed -n 's/^\(test_.*\)\.cpp$/program \1/p' | grep -v '^program test_remote_'
    if [ -n "$sanitize" ]; then return; fi
    # The messages are generated, one as the other.
    (cd cpp/include && find rnet -name '*.hpp' ! -path 'rnet/msgs/*' -printf 'header %p\n' | sort)
    printf 'headers %s\n' -std=c++20 -fno-exceptions
    find examples/c examples/cpp -name '*.c' -printf 'example %p\n' -o -name '*.cpp' -printf 'example %p\n' | sort
    printf '%s\n' first_release actor
}
tasks "$@" >"$out/tasks"
xargs --max-procs="$(($(nproc) + 1))" --max-lines=1 bash -c 'task "$@"' task <"$out/tasks" | tee "$out/results"

# A program is as many tests as it says.
passed=$(awk '/^ok / { n += $NF == "tests" ? $(NF - 1) : 1 } END { print n + 0 }' "$out/results")
failed=$(grep -c '^FAILED' "$out/results" || true)
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$(grep -c '^ok ' "$out/results")" -eq "$(wc -l <"$out/tasks")" ]
