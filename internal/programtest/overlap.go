package programtest

import (
	"flag"
	"runtime"
	"strconv"
)

// perCPU is how many tests that wait for other processes keep a processor busy.
const perCPU = 3

// Overlap lets more tests run at a time than there are processors, for packages
// whose tests wait for processes, engines and deadlines most of their time. It is
// called from TestMain; a -parallel that was given stays as it is.
func Overlap() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(perCPU*runtime.GOMAXPROCS(0))); err != nil {
		panic(err) // testing has that flag
	}
}
