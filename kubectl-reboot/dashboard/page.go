package dashboard

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's parts
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

// parsed has the page and each of its sections.
var parsed = template.Must(template.New("page").Parse(pageTemplate))

// sections are the parts of the page that change by themselves, in their order.
var sections = []string{"summary", "attention", "policies", "nodes", "progress", "waiting", "forecast", "log", "history"}

// style is the one style sheet: the page's and the pictures'.
func style() string { return pageStyle + timetable.Style }

// Policy is the Content-Security-Policy of the page: its own script and style sheet by their hashes, its server, and nothing else.
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
	// HTML is the whole page, and Sections its parts by their names.
	HTML     string
	Sections map[string]string
	// Explain answers for one node what kubectl reboot explain does. Nil: the page is a file, and
	// nobody answers.
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

// layout is what the page around the sections is made of.
type layout struct {
	View

	Sections []part
	Policy   string
	Style    template.CSS
	Script   template.JS
}

// execute renders one template. What nodes, hooks and people wrote is escaped by html/template; Harmless takes away what turns the
// direction of letters, or would reach a terminal.
func execute(name string, data any) (string, error) {
	var b bytes.Buffer
	if err := parsed.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("rendering %s: %w", name, err)
	}
	return terminal.Harmless(strings.ToValidUTF8(b.String(), string(utf8.RuneError))), nil
}
