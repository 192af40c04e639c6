package terminus

import (
	"strings"

	"github.com/proctor-run/proctor/internal/shellword"
)

const (
	sessionName = "terminus-2"
	sendKeys    = "tmux send-keys -t " + sessionName + " --"

	// maxSendKeys bounds a command of tmux, which takes no more than one message, in
	// bytes.
	maxSendKeys = 16_000
)

// sendCommands returns the shell commands that type keys in order (section 4.3).
// A key that tmux has a name for (C-c, Enter) is pressed, other text is typed.
func sendCommands(keys ...string) []string {
	whole := sendKeys
	for _, key := range keys {
		whole += " " + quoteKey(key)
	}
	if len(whole) <= maxSendKeys {
		return []string{whole}
	}
	var commands []string
	now := sendKeys
	for _, key := range keys {
		for _, piece := range pieces(key, maxSendKeys-len(sendKeys)-1) {
			quoted := quoteKey(piece)
			if now != sendKeys && len(now)+1+len(quoted) > maxSendKeys {
				commands = append(commands, now)
				now = sendKeys
			}
			now += " " + quoted
		}
	}
	return append(commands, now)
}

// pieces cuts a key, between characters, where its quoted form becomes longer than
// limit bytes.
func pieces(key string, limit int) []string {
	var list []string
	start, length, bare := 0, 0, true
	for i, r := range key {
		size, isBare := len(string(r)), shellword.IsBare(r)
		if r == '\'' {
			size = len(shellword.QuotedQuote)
		}
		quotes := 2
		if bare && isBare {
			quotes = 0
		}
		if length+size+quotes > limit && i > start {
			list = append(list, key[start:i])
			start, length, bare = i, 0, true
		}
		length += size
		bare = bare && isBare
	}
	return append(list, key[start:])
}

// quoteKey quotes a key for a shell. A semicolon at its end would separate commands of
// tmux.
func quoteKey(key string) string {
	if before, ok := strings.CutSuffix(key, ";"); ok {
		key = before + `\;`
	}
	return shellword.Quote(key)
}
