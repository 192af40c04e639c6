// Package house guards the order of the packages, who may import whom, and what
// they show to those who import them: types that have names, links that lead
// somewhere.
package house
