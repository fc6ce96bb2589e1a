// Package page has a real Chromium open the page that audit check writes, and looks at it.
package page
