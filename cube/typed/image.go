package typed

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// imagePrefix starts every image in JSON.
const imagePrefix = "data:image/png;base64,"

// maxPixels bounds what a picture from a document may unpack to.
const maxPixels = 64 << 20

// ImageError reports image data that cannot be decoded.
type ImageError struct{ Err error }

func (e *ImageError) Error() string { return fmt.Sprintf("decoding image: %v", e.Err) }

// ErrorType returns "UnidentifiedImageError".
func (e *ImageError) ErrorType() string { return "UnidentifiedImageError" }

// Unwrap returns the decoder's error.
func (e *ImageError) Unwrap() error { return e.Err }

// Image is a picture. One that was read keeps its data as it came, so that
// writing it again gives the same bytes (CUBE, section 2.2).
type Image struct {
	url string
	img image.Image
}

// NewImage returns a picture of pixels; it is encoded when it is written.
func NewImage(img image.Image) Image { return Image{img: img} }

// Pixels returns the picture; nil for the zero Image.
func (i *Image) Pixels() image.Image { return i.img }

// URL returns the picture as a data URL of a PNG.
func (i *Image) URL() (string, error) {
	if i.url != "" || i.img == nil {
		return i.url, nil
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, opaque(i.img)); err != nil {
		return "", &ImageError{err}
	}
	return imagePrefix + base64.StdEncoding.EncodeToString(buf.Bytes()), nil
}

// opaque keeps the encoder away from pixel formats whose conversion would
// change colours: premultiplied alpha is lossy, NRGBA is what a PNG holds.
func opaque(img image.Image) image.Image {
	switch img.(type) {
	case *image.Gray, *image.Gray16, *image.NRGBA, *image.NRGBA64, *image.Paletted:
		return img
	}
	b := img.Bounds()
	out := image.NewNRGBA(b)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			out.Set(x, y, color.NRGBAModel.Convert(img.At(x, y)))
		}
	}
	return out
}

// MarshalValue returns the data URL.
func (i *Image) MarshalValue() (any, error) {
	url, err := i.URL()
	return value.Str(url), err
}

// UnmarshalValue reads a data URL of a PNG.
func (i *Image) UnmarshalValue(v value.Value) error {
	s, ok := v.(value.Str)
	payload, isPNG := strings.CutPrefix(string(s), imagePrefix)
	if !ok || !isPNG {
		return &ValidationError{Errors: []FieldError{{Type: "is_instance_of", Msg: "Input should be an instance of Image"}}}
	}
	img, err := decodePNG(payload)
	if err != nil {
		return &ImageError{err}
	}
	i.url, i.img = string(s), img
	return nil
}

func decodePNG(payload string) (image.Image, error) {
	data, err := lenientBase64(payload)
	if err != nil {
		return nil, err
	}
	conf, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("reading the image's header: %w", err)
	}
	if int64(conf.Width)*int64(conf.Height) > maxPixels {
		return nil, fmt.Errorf("%d × %d pixels are more than %d", conf.Width, conf.Height, maxPixels)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("reading the image: %w", err)
	}
	return img, nil
}

// lenientBase64 ignores what is not of the alphabet and ends at the padding,
// as Python's decoder does.
func lenientBase64(s string) ([]byte, error) {
	kept := make([]byte, 0, len(s))
	pads := 0
	for i := 0; i < len(s) && (pads == 0 || len(kept)%4+pads < 4); i++ {
		c := s[i]
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/':
			kept = append(kept, c)
			pads = 0
		case c == '=' && len(kept)%4 >= 2:
			pads++
		}
	}
	if rest := len(kept) % 4; rest != 0 && rest+pads < 4 {
		return nil, fmt.Errorf("incorrect base64 padding")
	}
	data, err := base64.RawStdEncoding.DecodeString(string(kept))
	if err != nil {
		return nil, fmt.Errorf("reading base64: %w", err)
	}
	return data, nil
}
