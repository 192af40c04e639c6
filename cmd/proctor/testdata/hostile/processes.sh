# list_processes prints "PID START<tab>NAME" of every living process but for
# the first one, this shell, what started it and what that started besides. It
# starts none itself.
list_processes() {
	local own=" " p=$$ dir pid line rest
	while [ "$p" -gt 1 ]; do
		own="$own$p "
		read -r line 2>/dev/null < "/proc/$p/stat" || break
		rest=${line##*) }
		set -- $rest
		p=$2
	done
	for dir in /proc/[0-9]*; do
		pid=${dir#/proc/}
		case "$own" in *" $pid "*) continue ;; esac
		[ "$pid" = 1 ] && continue
		{ read -r line < "$dir/stat"; } 2>/dev/null || continue
		rest=${line##*) }
		set -- $rest
		[ "$1" = Z ] || [ "$1" = X ] && continue
		case "$own" in *" $2 "*) continue ;; esac
		printf '%s %s\t%s\n' "$pid" "${20}" "${line%)*}"
	done
}
