#!/bin/bash
ask() {
	exec 3<>/dev/tcp/store/7000
	printf '%s\n' "$*" >&3
	cat <&3
	exec 3>&-
}
question=$(ask GET question)
answer=$(ask GET answer)
echo "question: $question, answer: $answer"
if [ -n "$question" ] && [ "$answer" = "${question^^}" ]; then
	echo 1 >/logs/verifier/reward.txt
else
	echo 0 >/logs/verifier/reward.txt
fi
