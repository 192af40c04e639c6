package egress_test

import (
	"fmt"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
)

func ExamplePolicy_Allows() {
	p := egress.Policy{Mode: sandbox.NetworkAllowlist, Hosts: []string{"pypi.org", "*.pythonhosted.org"}}
	for _, host := range []string{"pypi.org", "www.pypi.org", "files.pythonhosted.org", "pythonhosted.org", "151.101.0.223"} {
		fmt.Println(host, p.Allows(host))
	}
	// Output:
	// pypi.org true
	// www.pypi.org false
	// files.pythonhosted.org true
	// pythonhosted.org false
	// 151.101.0.223 false
}
