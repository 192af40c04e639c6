# Prints and keeps what it knows, as agents with debug output do.
url() { printf %s "$1" | sed 's,+,%2B,g; s,/,%2F,g; s,=,%3D,g'; }
hexadecimal() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }

for secret in "$AGENT_TOKEN" "$api_key" "$APP" "$DB_PASSWORD"; do
	printf 'debug: using %s\n' "$secret"
	printf %s "user:$secret" | base64 -w0; echo
done
cat "$PROCTOR_INSTRUCTION_FILE" "$PROCTOR_MCP_CONFIG"
env

{
	echo "plain $FILE_SECRET"
	for before in '' u us; do printf 'base64 '; printf %s "$before$FILE_SECRET" | base64 -w0; echo; done
	echo "hex $(hexadecimal "$FILE_SECRET")"
	echo "URL $(url "$FILE_SECRET")"
	printf '{"json": "%s"}\n' "$(printf %s "$FILE_SECRET" | sed 's,/,\\/,g')"
} > /logs/agent/notes.txt
touch "/logs/agent/by-name-$(url "$FILE_SECRET")"
ln -s "/nowhere/$FILE_SECRET" /logs/agent/by-target

cat > /logs/agent/trajectory.json <<END
{"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "leak", "version": "1"}, "steps": [
 {"step_id": 1, "source": "user", "message": "go"},
 {"step_id": 2, "source": "agent", "message": "the key is $TRAJECTORY_SECRET"}]}
END

# A process that outlives the agent, and is named in the notes of the trial.
(exec -a "$TITLE_SECRET" sleep 300) > /dev/null 2>&1 &

: > /logs/agent/ready
while ! test -e /logs/agent/go; do sleep 0.05; done
rm -f /logs/agent/ready /logs/agent/go
echo "fatal: refused: $EXIT_SECRET"
exit 7
