package dashboard

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the parts of the page
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
	"unicode/utf8"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/timetable"
)

//go:embed page.html
var pageTemplate string

//go:embed style.css
var pageStyle string

//go:embed script.js
var pageScript string

// parsed is the template of the page and its sections.
var parsed = template.Must(template.New("page").Parse(pageTemplate))

// sections lists the parts of the page that are updated separately, in order.
var sections = []string{"summary", "attention", "policies", "nodes", "progress", "waiting", "forecast", "log", "history"}

// style returns the style sheet of the page and its pictures.
func style() string { return pageStyle + timetable.Style }

// Policy returns the Content-Security-Policy of the page. It allows the page's own script and style
// sheet by their hashes, requests to its server, and nothing else.
func Policy() string {
	return fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'",
		hash(pageScript), hash(style()))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Page is a rendered view.
type Page struct {
	// HTML is the whole page, and Sections holds its parts by name.
	HTML     string
	Sections map[string]string
	// Explain returns the output of kubectl reboot explain for a node. It is nil for a page in a
	// file.
	Explain func(node string) string
}

// Render renders a view.
func Render(v View) (Page, error) {
	page := Page{Sections: map[string]string{}}
	var parts []part
	for _, name := range sections {
		html, err := execute(name, v)
		if err != nil {
			return Page{}, err
		}
		html = moment.Local(html, v.Zone)
		page.Sections[name] = html
		parts = append(parts, part{name, template.HTML(html)}) // html/template has escaped it
	}
	var err error
	page.HTML, err = execute("page", layout{
		View: v, Sections: parts, Policy: Policy(),
		Style: template.CSS(style()), Script: template.JS(pageScript), // both are constants
	})
	return page, err
}

// part is a rendered section.
type part struct {
	Name string
	HTML template.HTML
}

// layout is the input of the template for the whole page.
type layout struct {
	View

	Sections []part
	Policy   string
	Style    template.CSS
	Script   template.JS
}

// execute renders one template. html/template escapes text from nodes, hooks and people, and
// Harmless removes characters that change the text direction or control a terminal.
func execute(name string, data any) (string, error) {
	var b bytes.Buffer
	if err := parsed.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("rendering %s: %w", name, err)
	}
	return terminal.Harmless(strings.ToValidUTF8(b.String(), string(utf8.RuneError))), nil
}
