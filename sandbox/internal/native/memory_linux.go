package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	lowestScore  = -1000 // is never killed
	highestScore = 1000
	// apart is how much more readily commands are killed than the guest where
	// the guest cannot be spared: as if they had half of the memory more.
	apart = 500
)

// Spare makes the kernel kill any command before the guest. The guest has the
// lowest score where it may, and commands what the caller has; otherwise
// commands get a higher one.
func Spare() (Scores, error) {
	const file = "/proc/self/oom_score_adj"
	text, err := os.ReadFile(file)
	if err != nil {
		return Scores{}, fmt.Errorf("sparing the supervisor when memory is short: %w", err)
	}
	own, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return Scores{}, fmt.Errorf("sparing the supervisor when memory is short: %w", err)
	}
	held, err := permitted()
	if err != nil {
		return Scores{}, err
	}
	scores := Scores{Guest: lowestScore, Commands: max(own, 0), keep: 1 << unix.CAP_SYS_RESOURCE}
	if held&scores.keep != 0 {
		err = os.WriteFile(file, []byte(strconv.Itoa(scores.Guest)), 0)
		if err == nil {
			return scores, nil
		}
		if !errors.Is(err, fs.ErrPermission) { // the root of a user namespace has it there only
			return Scores{}, fmt.Errorf("sparing the supervisor when memory is short: %w", err)
		}
	}
	return Scores{Guest: own, Commands: min(own+apart, highestScore)}, nil
}
