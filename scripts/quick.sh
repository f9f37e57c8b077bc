#!/usr/bin/env bash
# Runs `make quick`: formatting and lints of everything, unit tests of changed packages, and changed Python
# tests. Changes are relative to the point where the branch left main; QUICK_BASE names another branch or
# commit.
#
# Cargo finds the dependents of a change itself: the lints cover the whole workspace, and only outdated crates
# take time.
set -euo pipefail
cd "$(dirname "$0")/.."

# On main itself: uncommitted changes, and unpushed ones if a remote exists.
base_of() {
    local base
    for base in "${QUICK_BASE-}" "$([ "$(git branch --show-current)" = main ] || echo main)" origin/main; do
        if [ -n "$base" ] && git merge-base HEAD "$base" 2>/dev/null; then return; fi
    done
    git rev-parse HEAD
}

base=$(base_of)
mapfile -t changed < <(
    { git diff --name-only --diff-filter=d "$base" && git ls-files --others --exclude-standard; } | sort -u
)
echo "quick: ${#changed[@]} files changed since $(git log -1 --format='%h, %s' "$base")"

packages=() pytests=() rust=no targets=(--bins)
for file in "${changed[@]}"; do
    case $file in
    Cargo.toml | Cargo.lock) rust=yes packages+=(--workspace) targets=(--lib --bins) && continue ;;
    bench/* | fuzz/*) ;; # separate workspaces, whose builds take too long here
    *.rs | *.proto | *Cargo.toml)
        rust=yes folder=$file
        while folder=$(dirname "$folder") && [ "$folder" != . ]; do
            if [ -f "$folder/Cargo.toml" ]; then
                if [ -f "$folder/src/lib.rs" ]; then targets=(--lib --bins); fi
                packages+=("--package=$(sed -n '/^name = /{s/.*"\(.*\)"/\1/p;q}' "$folder/Cargo.toml")")
                break
            fi
        done
        ;;
    esac
    case $file in
    bench/*) ;; # needs the other systems
    *test_*.py) pytests+=("$file") ;;
    esac
done

scripts/step.sh --start
code=0
step() { scripts/step.sh "$@" || code=1; }
step check-fmt cargo fmt --all --check -- --color never
for workspace in fuzz bench; do
    if printf '%s\n' "${changed[@]}" | grep -q "^$workspace/.*\.rs$"; then
        step "check-fmt-$workspace" cargo fmt --manifest-path "$workspace/Cargo.toml" --all --check -- --color never
    fi
done
if [ $rust = yes ]; then step check-clippy cargo clippy --workspace --all-targets -- -D warnings; fi
step check-deps cargo xtask deps
step check-cycles cargo xtask cycles
step check-tidy cargo xtask tidy
if [ ${#packages[@]} -gt 0 ]; then
    mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
    if printf '%s\n' "${packages[@]}" | grep -qx -e --workspace; then packages=(--workspace); fi
    step test-unit cargo test "${packages[@]}" "${targets[@]}"
fi
if [ ${#pytests[@]} -gt 0 ]; then
    # With the installed package: `make build-dev` updates it.
    if .venv/bin/python -c 'import rnet' 2>/dev/null; then
        step test-python .venv/bin/python -m pytest "${pytests[@]}"
    else
        echo "quick: the Python tests that changed need the package: make build-dev"
    fi
fi
scripts/step.sh --summary
exit $code
