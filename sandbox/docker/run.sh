# Runs a command so that its end is known although others hold its output.
#
# $1 is "merged" or "split". The command is in the environment, as PROCTOR_ARG_0
# and so on, so that it is not found in this shell's own arguments by those who
# look for it there. Its output passes a relay (cat). What follows the frame word on the stream is: at the start, this
# shell's /proc stat line; behind all that the command wrote, its exit code.
# The relay, and so this shell, live as long as somebody holds the output: a
# daemon that the command left is never killed by a closed pipe.
trap '' HUP INT QUIT TERM # a signal to the whole group concerns the command
_proctor_frame=$PROCTOR_FRAME
IFS= read -r _proctor_stat </proc/self/stat
printf '%s%s\n' "$_proctor_frame" "$_proctor_stat"
_proctor_mode=$1
shift
_proctor_i=0
while [ "$_proctor_i" -lt "${PROCTOR_ARGC:-0}" ]; do
	eval "set -- \"\$@\" \"\$PROCTOR_ARG_$_proctor_i\"; unset PROCTOR_ARG_$_proctor_i"
	_proctor_i=$((_proctor_i + 1))
done
unset PROCTOR_FRAME PROCTOR_ARGC SHLVL OLDPWD

_proctor_run() {
	(
		trap - HUP INT QUIT TERM
		exec 6>&-
		exec "$@"
	) 2>&6
	_proctor_code=$?
	printf '%s%d\n' "$_proctor_frame" "$_proctor_code"
	[ "$_proctor_mode" = merged ] || printf '%s%d\n' "$_proctor_frame" "$_proctor_code" >&6
}

_proctor_relay() {
	unset LD_PRELOAD LD_LIBRARY_PATH
	PATH=/usr/bin:/bin:$PATH
	exec cat
}

if [ "$_proctor_mode" = merged ]; then
	_proctor_run "$@" 6>&1 2>/dev/null | _proctor_relay
else
	exec 4>&1 5>&2
	{
		_proctor_run "$@" 6>&1 1>&3 3>&- 4>&- 5>&- 2>/dev/null | _proctor_relay >&5 3>&- 4>&- 5>&-
	} 3>&1 | _proctor_relay >&4 4>&- 5>&-
fi
