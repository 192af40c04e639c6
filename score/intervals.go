package score

import (
	"math"
	"math/big"
)

// signTest is the exact two-sided sign test: the probability, if each of the
// decided pairs falls either way with equal chance, of a result at least as
// uneven.
func signTest(wins, losses int) float64 {
	n, few := wins+losses, min(wins, losses)
	// The sum of the first binomials is exact, and divided by 2^n once.
	sum, choose := new(big.Int), big.NewInt(1)
	for k := range few + 1 {
		sum.Add(sum, choose)
		choose.Mul(choose, big.NewInt(int64(n-k)))
		choose.Quo(choose, big.NewInt(int64(k+1)))
	}
	total := new(big.Int).Lsh(big.NewInt(1), uint(n))
	p, _ := new(big.Rat).SetFrac(sum.Lsh(sum, 1), total).Float64()
	return min(p, 1)
}

// studentQuantile is the t below which Student's distribution with df degrees
// of freedom has probability p, for p above one half.
func studentQuantile(p, df float64) float64 {
	low, high := 0.0, 1.0
	for studentCDF(high, df) < p && high < 1e9 {
		high *= 2
	}
	for range 200 {
		mid := (low + high) / 2
		if mid == low || mid == high {
			break
		}
		if studentCDF(mid, df) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// studentCDF is the probability of a value below t, t not negative.
func studentCDF(t, df float64) float64 {
	x := df / (df + float64(t*t))
	return 1 - incompleteBeta(x, df/2, 0.5)/2
}

// binomialInterval is the interval of Clopper and Pearson for x successes of n,
// which need not be whole.
func binomialInterval(x, n, confidence float64) (low, high float64) {
	tail := (1 - confidence) / 2
	low, high = 0, 1
	if x > 0 {
		low = betaQuantile(tail, x, n-x+1)
	}
	if x < n {
		high = betaQuantile(1-tail, x+1, n-x)
	}
	return low, high
}

// betaQuantile is the x below which the beta distribution has probability p.
func betaQuantile(p, a, b float64) float64 {
	low, high := 0.0, 1.0
	for range 200 {
		mid := (low + high) / 2
		if mid == low || mid == high {
			break
		}
		if incompleteBeta(mid, a, b) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// incompleteBeta is the regularised incomplete beta function, by its continued
// fraction on the side where that converges fast.
func incompleteBeta(x, a, b float64) float64 {
	if x <= 0 {
		return 0
	}
	if x >= 1 {
		return 1
	}
	if x > (a+1)/(a+b+2) {
		return 1 - incompleteBeta(1-x, b, a)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab - la - lb + float64(a*math.Log(x)) + float64(b*math.Log1p(-x)))
	return front * betaFraction(x, a, b) / a
}

// betaFraction evaluates the continued fraction by Lentz's method.
func betaFraction(x, a, b float64) float64 {
	const tiny, enough, most = 1e-300, 1e-15, 10000
	nonZero := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/nonZero(1-(a+b)*x/(a+1))
	f := d
	for m := 1.0; m < most; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / nonZero(1+float64(even*d))
		c = nonZero(1 + even/c)
		f *= c * d
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / nonZero(1+float64(odd*d))
		c = nonZero(1 + odd/c)
		step := float64(c * d)
		f *= step
		if math.Abs(step-1) < enough {
			break
		}
	}
	return f
}
