#!/bin/sh
# Runs a node with run.py's pipes as its stdin and stdout: talk.sh NODE PROGRAM [ARGUMENT ...]
node=$1
shift
exec "$@" <"$DEMO_TALK/$node.commands" >"$DEMO_TALK/$node.reports"
