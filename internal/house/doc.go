// Package house guards the order of the packages: who may import whom.
package house
