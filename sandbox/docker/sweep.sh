# Finds and ends the processes of the container that were born since a given
# moment. Runs as root, with shell builtins alone as far as possible: images
# need no ps, and with the process table full nothing can be started.
#
# $1 mark | term | wait | kill
# $2 $3  start time and pid: targets are what was born later
# $4 spare: not what belongs to another command under way; all: everything
# $5 the roots of commands that are not under way, each as pid:start
# $6 how often "term" and "wait" look again
#
# Prints "mark START PID", or "left N".
#
# What a process calls itself decides nothing. Its stat line is read to the
# last parenthesis; parent, session and start time are the kernel's.
exec 2>/dev/null
mode=$1 base=$2 first=$3 others=$4 ended=$5 looks=$6
self=$$

# stat reads what the kernel says of process $1; false when it is gone. The
# name in it may hold anything, also newlines.
stat() {
	text=
	while IFS= read -r line || [ -n "$line" ]; do text="$text $line"; done <"/proc/$1/stat" || return 1
	case $text in *')'*) ;; *) return 1 ;; esac
	set -- ${text##*')'}
	[ $# -ge 20 ] || return 1
	state=$1 ppid=$2 sid=$4 threads=${18} start=${20}
}

# cursor is the last process id given out here. While it stands still no
# process was born.
cursor() {
	read -r _ _ _ _ last </proc/loadavg
}

all= roots=
scan() {
	for p in $all; do eval "unset pp_$p"; done
	all= roots= targets=
	for dir in /proc/[0-9]*; do
		p=${dir#/proc/}
		stat "$p" || continue
		# A dead leader may have living threads.
		case $state in Z | X | x) [ "$threads" -gt 1 ] || continue ;; esac
		[ "$p" != "$self" ] && [ "$ppid" != "$self" ] || continue
		eval "pp_$p=$ppid sid_$p=$sid born_$p=$start state_$p=$state"
		all="$all $p"
		# Only what the engine put into the container has no parent in it.
		if [ "$ppid" = 0 ] && [ "$p" != 1 ]; then
			case " $ended " in *" $p:$start "*) ;; *) roots="$roots $p" ;; esac
		fi
	done
	for p in $all; do
		eval "sid=\$sid_$p start=\$born_$p"
		# Session 1 is the container's own first process and its children;
		# no other process can join it.
		[ "$p" != 1 ] && [ "$sid" != 1 ] || continue
		[ "$start" -gt "$base" ] || { [ "$start" -eq "$base" ] && [ "$p" -ge "$first" ]; } || continue
		[ "$others" = all ] || ! spared "$p" || continue
		targets="$targets $p"
	done
}

# spared tells whether process $1 belongs to another command under way: by
# its parents, by its session, or, for what left both, by the secret word that
# the command's environment carries.
spared() {
	[ -n "$roots" ] || return 1
	eval "sid=\$sid_$1 start=\$born_$1"
	r=$1 depth=0
	while eval "up=\${pp_$r-1}" && [ "$up" -gt 1 ] && [ $depth -lt 500 ]; do
		r=$up depth=$((depth + 1))
	done
	if [ "$up" = 0 ]; then
		case " $roots " in *" $r "*) return 0 ;; *) return 1 ;; esac
	fi
	case " $roots " in *" $sid "*) return 0 ;; esac
	case " $ended " in *" $sid:"*) return 1 ;; esac
	environ=
	while IFS= read -r line || [ -n "$line" ]; do environ="$environ$line"; done <"/proc/$1/environ"
	for r in $roots; do
		eval "[ $start -ge \$born_$r ]" || continue
		word "$r"
		[ -n "$word" ] || continue
		case $environ in *"$word"*) return 0 ;; esac
	done
	return 1
}

# word sets the secret of the command whose root is $1, or nothing.
word() {
	text= word=
	while IFS= read -r line || [ -n "$line" ]; do text="$text$line"; done <"/proc/$1/environ"
	case $text in *PROCTOR_EXEC=*) ;; *) return ;; esac
	text=${text#*PROCTOR_EXEC=}
	word=PROCTOR_EXEC=${text%"${text#????????????????????????????????}"}
	[ ${#word} -eq 45 ] || word=
}

# clear proves that no target is left: none is seen, and none was born while
# looking.
clear() {
	cursor
	before=$last
	scan
	cursor
	[ -z "$targets" ] && [ "$before" = "$last" ]
}

# freeze stops all processes but the first in one step of the kernel, looks,
# kills, and lets the others go on. What had been stopped before stays so.
freeze() {
	stopped=
	for p in $all; do
		eval "[ \"\$state_$p\" = T ]" && stopped="$stopped $p"
	done
	kill -s STOP -- -1
	scan
	frozen=$targets
	[ -z "$targets" ] || kill -s KILL $targets
	for p in $all; do
		case " $targets $stopped 1 " in *" $p "*) ;; *) kill -s CONT "$p" ;; esac
	done
}

report() {
	set -- $targets
	echo "left $#"
}

look() {
	n=0
	until clear; do
		[ $n -lt "$looks" ] || { targets=${targets:-unsettled}; break; }
		n=$((n + 1))
		sleep 0.05
	done
	report
}

case $mode in
mark)
	stat "$self"
	echo "mark $start $self"
	;;
term)
	scan
	if [ -n "$targets" ]; then
		kill -s TERM $targets
		kill -s CONT $targets
	fi
	look
	;;
wait)
	look
	;;
kill)
	round=0
	until clear; do
		[ $round -lt 200 ] || break
		if [ $round -ge 3 ]; then
			freeze
			[ -n "$frozen" ] || break
		elif [ -n "$targets" ]; then
			kill -s STOP $targets
			scan
			[ -z "$targets" ] || kill -s KILL $targets
		fi
		round=$((round + 1))
		[ $round -lt 6 ] || sleep 0.05
	done
	report
	;;
esac
