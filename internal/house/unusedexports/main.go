// The command unusedexports says how many exports of the module's public packages
// no other package of the module uses, commands and examples included, and with
// -l which. Others may use them: the number is for those who think of what to
// promise.
package main

import (
	"flag"
	"fmt"
	"go/token"
	"log"
	"strings"

	"github.com/proctor-run/proctor/internal/house/source"
)

func main() {
	log.SetFlags(0)
	list := flag.Bool("l", false, "list them")
	flag.Parse()
	all, err := source.Load(".")
	if err != nil {
		log.Fatal(err)
	}
	used := usedByOthers(all)
	count := 0
	for _, p := range all {
		names := unused(p, used)
		count += len(names)
		if *list && len(names) > 0 {
			fmt.Printf("%s: %d: %s\n", p.Path, len(names), strings.Join(names, " "))
		}
	}
	fmt.Printf("%d exports are used by no other package of the module\n", count)
}

// usedByOthers are the names that other packages use than their own, as PATH.NAME.
func usedByOthers(all []source.Package) map[string]bool {
	used := map[string]bool{}
	for _, p := range all {
		for _, o := range p.Uses {
			if o.Pkg() != nil && o.Pkg() != p.Types && o.Parent() == o.Pkg().Scope() {
				used[o.Pkg().Path()+"."+o.Name()] = true
			}
		}
	}
	return used
}

// unused are the exports of a public package that are not used.
func unused(p source.Package, used map[string]bool) []string {
	if !p.Public() {
		return nil
	}
	var names []string
	for _, name := range p.Types.Scope().Names() {
		if token.IsExported(name) && !used[p.Types.Path()+"."+name] {
			names = append(names, name)
		}
	}
	return names
}
