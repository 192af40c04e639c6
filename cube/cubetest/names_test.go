package cubetest

// What only tests outside the package need by name.

var (
	JSON       = json
	RunEpisode = runEpisode
)
