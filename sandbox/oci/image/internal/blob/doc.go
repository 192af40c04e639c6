// Package blob reads the streams that images are made of: it decompresses them,
// verifies digests, counts and bounds bytes.
package blob
