#!/bin/bash
# Notes who is there, gives 0.25, and watches whether anyone writes to the
# directory meanwhile.
. /tests/processes.sh
logs=/logs/verifier
list_processes > $logs/processes
: > $logs/late
rm -f $logs/reward.json $logs/reward.txt
sizes() { stat -c '%n %s %Z' $logs/held.* $logs/second 2>/dev/null; }
before=$(sizes)
watch() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		sleep 0.05
		[ ! -e $logs/reward.json ] || echo "$1: reward.json came back" >> $logs/late
		[ "$2" = "$(cat $logs/reward.txt 2>/dev/null)" ] || echo "$1: reward.txt is $(cat $logs/reward.txt)" >> $logs/late
	done
}
watch "before the reward" ""
echo 0.25 > $logs/reward.txt
watch "after the reward" 0.25
[ "$before" = "$(sizes)" ] || echo "held files grew: $before, $(sizes)" >> $logs/late
