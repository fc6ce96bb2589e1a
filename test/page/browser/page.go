package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// pngQuality has chromedp make a PNG, which loses no colour.
const pngQuality = 100

// see opens a page, and looks at the elements that selectors name.
func see(ctx context.Context, t *chromedp.Target, address string, o options) (*view, error) {
	prefers := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: o.scheme}}}
	if _, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, prefers); err != nil {
		return nil, fmt.Errorf("prefer %s: %w", o.scheme, err)
	}
	if _, err := chromedp.Navigate(address)(ctx, t); err != nil {
		return nil, err
	}
	var err error
	seen := &view{Elements: map[string][]element{}}
	if seen.Browser, err = chromedp.Evaluate[string]("navigator.userAgent")(ctx, t); err != nil {
		return nil, err
	}
	if seen.Width, err = chromedp.Evaluate[int]("document.scrollingElement.scrollWidth")(ctx, t); err != nil {
		return nil, err
	}
	for _, selector := range o.selectors {
		quoted, err := json.Marshal(selector)
		if err != nil {
			return nil, fmt.Errorf("quote %q: %w", selector, err)
		}
		if seen.Elements[selector], err = chromedp.Evaluate[[]element](fmt.Sprintf(finder, quoted))(ctx, t); err != nil {
			return nil, fmt.Errorf("find %q: %w", selector, err)
		}
	}
	shot, err := chromedp.FullScreenshot(pngQuality)(ctx, t)
	if err != nil {
		return nil, err
	}
	return seen, colour(shot, seen.Elements)
}

// heard is what the browser told of a page.
type heard struct {
	page string

	mu                sync.Mutex
	requests, console []string
}

func (h *heard) event(event any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if e.Request.URL != h.page {
			h.requests = append(h.requests, e.Request.URL)
		}
	case *log.EventEntryAdded:
		h.console = append(h.console, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *runtime.EventConsoleAPICalled:
		line := string(e.Type) + ":"
		for _, arg := range e.Args {
			line += " " + string(arg.Value)
		}
		h.console = append(h.console, line)
	case *runtime.EventExceptionThrown:
		line := "exception: " + e.ExceptionDetails.Text
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			line += " " + thrown.Description
		}
		h.console = append(h.console, line)
	}
}

func (h *heard) said() (requests, console []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.requests, h.console
}

// finder returns where elements are, and how their style says that they look.
const finder = `[...document.querySelectorAll(%s)].map(e => {
	const at = e.getBoundingClientRect(), style = getComputedStyle(e);
	return {Class: e.getAttribute("class") || "", Text: e.textContent.trim(), X: at.x + scrollX, Y: at.y + scrollY,
		Width: at.width, Height: at.height, Fill: style.fill, Stroke: style.stroke, Color: style.color};
})`

// colour fills in which colours the screen has in the middle of elements.
func colour(shot []byte, found map[string][]element) error {
	screen, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return fmt.Errorf("read the screenshot: %w", err)
	}
	for _, elements := range found {
		for i := range elements {
			e := &elements[i]
			at := image.Pt(int(e.X+e.Width/2), int(e.Y+e.Height/2))
			if !at.In(screen.Bounds()) {
				e.Pixel = "outside of the page"
				continue
			}
			r, g, b, _ := screen.At(at.X, at.Y).RGBA()
			e.Pixel = fmt.Sprintf("rgb(%d, %d, %d)", r>>8, g>>8, b>>8)
		}
	}
	return nil
}
