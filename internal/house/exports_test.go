package house

import (
	"go/token"
	"go/types"
	"strings"
	"testing"
)

// TestPublicSignatures: who imports a public package can name every type that its
// functions, methods and fields have.
func TestPublicSignatures(t *testing.T) {
	t.Parallel()
	for _, l := range packagesOfModule(t) {
		if !l.public() {
			continue
		}
		for name, typ := range signatures(l.pkg) {
			if p := internalIn(typ); p != "" {
				t.Errorf("%s.%s has a type of %s: %s", l.path, name, p, typ)
			}
		}
	}
}

// signatures returns the types that a package shows to those who import it, by
// what has them.
func signatures(p *types.Package) map[string]types.Type {
	out := map[string]types.Type{}
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		tn, ok := o.(*types.TypeName)
		if !ok {
			out[name] = o.Type()
			continue
		}
		if tn.IsAlias() {
			out[name] = types.Unalias(tn.Type())
			continue
		}
		ofNamed(out, name, tn.Type().(*types.Named))
	}
	return out
}

// ofNamed adds what a declared type shows: its constraints, exported fields and
// methods.
func ofNamed(out map[string]types.Type, name string, named *types.Named) {
	for i := range named.TypeParams().Len() {
		out[name+"["+named.TypeParams().At(i).Obj().Name()+"]"] = named.TypeParams().At(i).Constraint()
	}
	for i := range named.NumMethods() {
		if m := named.Method(i); m.Exported() {
			out[name+"."+m.Name()] = m.Type()
		}
	}
	switch u := named.Underlying().(type) {
	case *types.Struct:
		for i := range u.NumFields() {
			if f := u.Field(i); f.Exported() {
				out[name+"."+f.Name()] = f.Type()
			}
		}
	case *types.Interface:
		for i := range u.NumExplicitMethods() {
			if m := u.ExplicitMethod(i); m.Exported() {
				out[name+"."+m.Name()] = m.Type()
			}
		}
		for i := range u.NumEmbeddeds() {
			out[name+"."+u.EmbeddedType(i).String()] = u.EmbeddedType(i)
		}
	default:
		out[name] = u
	}
}

// internalIn returns the path of an internal package that a type is written
// with; "" for none.
func internalIn(typ types.Type) string {
	found := ""
	types.TypeString(typ, func(p *types.Package) string {
		if path := p.Path(); strings.HasPrefix(path, module) && strings.Contains(path, "/internal/") {
			found = strings.TrimPrefix(path, module)
		}
		return p.Path()
	})
	return found
}

func TestInternalTypesAreFound(t *testing.T) {
	t.Parallel()
	hidden := types.NewPackage(module+"internal/hidden", "hidden")
	typ := types.NewNamed(types.NewTypeName(token.NoPos, hidden, "T", nil), types.NewStruct(nil, nil), nil)
	p := types.NewPackage(module+"p", "p")
	param := types.NewTuple(types.NewVar(token.NoPos, p, "x", types.NewSlice(types.NewPointer(typ))))
	f := types.NewFunc(token.NoPos, p, "F", types.NewSignatureType(nil, nil, nil, param, nil, false))
	field := types.NewField(token.NoPos, p, "Hidden", typ, false)
	s := types.NewNamed(types.NewTypeName(token.NoPos, p, "S", nil), types.NewStruct([]*types.Var{field}, nil), nil)
	for _, o := range []types.Object{f, s.Obj(), types.NewVar(token.NoPos, p, "fine", types.Typ[types.Int])} {
		p.Scope().Insert(o)
	}
	got := signatures(p)
	for _, name := range []string{"F", "S.Hidden"} {
		if typ, ok := got[name]; !ok || internalIn(typ) != "internal/hidden" {
			t.Errorf("%s: an internal type is not seen in %v", name, typ)
		}
	}
	if len(got) != 2 {
		t.Errorf("signatures %v, want two", got)
	}
}

// maxUnused is how many exports of public packages nothing but their own package
// and tests may use. It only ever becomes smaller: what is exported has to be
// kept.
const maxUnused = 150

// TestExportsAreUsed: what is exported is used by another package of the module,
// commands and examples included, and of the examples the tests too. A few are
// for others alone.
func TestExportsAreUsed(t *testing.T) {
	t.Parallel()
	all := packagesOfModule(t)
	used := map[string]bool{}
	for _, l := range all {
		for _, o := range l.uses {
			if o.Pkg() != nil && o.Pkg() != l.pkg && o.Parent() == o.Pkg().Scope() {
				used[o.Pkg().Path()+"."+o.Name()] = true
			}
		}
	}
	count := 0
	for _, l := range all {
		if !l.public() {
			continue
		}
		var unused []string
		for _, name := range l.pkg.Scope().Names() {
			if token.IsExported(name) && !used[l.pkg.Path()+"."+name] {
				unused = append(unused, name)
			}
		}
		if count += len(unused); len(unused) > 0 {
			t.Logf("%s: %d: %s", l.path, len(unused), strings.Join(unused, " "))
		}
	}
	if count > maxUnused {
		t.Errorf("%d exports are used by no other package, at most %d may be: hide what was added", count, maxUnused)
	}
}
