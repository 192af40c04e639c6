# An agent that asks the model once for commands that do the task, and runs them. It needs
# bash and sed, and finds the model where proctor's gateway is:
#
#   proctor run -p examples/tasks/hello-world -a command -m anthropic/claude-sonnet-4-5 \
#     --ak run="$(cat examples/agents/one-call.sh)"
#
# PROCTOR_MODEL_URL and PROCTOR_MODEL_KEY are the gateway's, PROCTOR_MODEL is the name of -m.
set -eu

escape() { # TEXT: as it stands in JSON
	local text=$1
	text=${text//\\/\\\\}
	text=${text//\"/\\\"}
	text=${text//$'\t'/\\t}
	text=${text//$'\r'/\\r}
	printf '%s' "${text//$'\n'/\\n}"
}

unescape() { # TEXT: the other way round
	local text=$1 backslash=$'\001'
	text=${text//\\\\/$backslash}
	text=${text//\\\"/\"}
	text=${text//\\\//\/}
	text=$(printf '%b' "$text")
	printf '%s' "${text//$backslash/\\}"
}

post() { # PATH BODY: prints the body of the answer
	local host=${PROCTOR_MODEL_URL#http://}
	exec 3<>"/dev/tcp/${host%:*}/${host#*:}"
	printf '%s\r\n' "POST $1 HTTP/1.0" "Host: $host" "Authorization: Bearer $PROCTOR_MODEL_KEY" \
		"Content-Type: application/json" "Content-Length: $(printf '%s' "$2" | wc -c)" "" >&3
	printf '%s' "$2" >&3
	sed '1,/^\r$/d' <&3
}

ask="Answer with bash commands alone, no prose and no fences, that do this in $PWD: $PROCTOR_INSTRUCTION"
message='{"role":"user","content":"'$(escape "$ask")'"}'
case $PROCTOR_MODEL in
anthropic/*) path=/v1/messages member=text ;;
*) path=/v1/chat/completions member=content ;;
esac
answer=$(post "$path" '{"model":"'"${PROCTOR_MODEL#*/}"'","max_tokens":4000,"messages":['"$message"']}')
commands=$(printf '%s' "$answer" | tr -d '\n' | sed -n 's/.*"'$member'": *"\(\([^"\\]\|\\.\)*\)".*/\1/p')
[ -n "$commands" ] || { printf 'no commands in the answer: %s\n' "$answer"; exit 1; }
commands=$(unescape "$commands")
printf '%s\n' "$commands"
bash -eu -c "$commands"
