#!/bin/bash
set -eu
ask() {
	exec 3<>/dev/tcp/store/7000
	printf '%s\n' "$*" >&3
	cat <&3
	exec 3>&-
}
question=$(ask GET question)
ask SET answer "${question^^}"
