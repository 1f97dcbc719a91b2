package notify

import "testing"

// TestRedact_LeavesNothingOfTheAddress: neither as it is in the Secret, nor as a library writes it.
func TestRedact_LeavesNothingOfTheAddress(t *testing.T) {
	for name, tc := range map[string]struct{ address, text, want string }{
		"the whole of it": {
			"smtp://ops:Pa%25ss!9@mail.example.com:587/", "sending to smtp://ops:Pa%25ss!9@mail.example.com:587/ failed", "sending to … failed",
		},
		"a password with signs in it": {
			"smtp://ops:Pa%25ss!9@mail.example.com:587/", "535 refused: Pa%ss!9", "535 refused: …",
		},
		"a password that the library escapes in its own way": {
			"smtp://ops:Pa%25ss!9@mail.example.com:587/", "GET Pa%25ss%219 failed", "GET … failed",
		},
		"a password of signs alone": {
			"smtp://ops:!%24%25~@mail.example.com:587/", "535 refused: !$%~", "535 refused: …",
		},
		"a password with what separates parts": {
			"smtp://ops:a:b%2Fc%40d@mail.example.com:587/", "535 refused: a:b/c@d", "535 refused: …",
		},
		"a password in quotes": {
			"smtp://ops:a%22b%5Cc@mail.example.com:587/", `parse "a\"b\\c": no`, `parse "…": no`,
		},
		"a user whose name begins the password": {
			"generic://bot:bot12345@10.0.0.1/", "403 for bot12345", "403 for …",
		},
		"a word that begins a later one": {
			"generic://10.0.0.1/key/keyABCDEF", "403 for keyABCDEF", "403 for …",
		},
		"the userinfo": {
			"generic://a!:b!@10.0.0.1/", "403 for a!:b!", "403 for …",
		},
		"the path and the query": {
			"generic://10.0.0.1/T-0/B-0?k=x!y", "POST https://example.com/T-0/B-0?k=x!y: 403", "POST https://example.com…?…: 403",
		},
		"a token of a query, unescaped": {
			"generic://10.0.0.1/?key=a%2Bb+c", "403 for a+b c", "403 for …",
		},
		"a part of a token": {
			"slack://hook:T00-B00-XXXX@webhook", "no webhook B00", "no … …",
		},
		"an address that cannot be read": {
			"smtp://ops:Pa%ss!9@mail", "who is Pa%ss!9", "who is …",
		},
		"nothing of it": {
			"slack://hook:T00-B00-XXXX@webhook", "no such host", "no such host",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := redact(tc.text, tc.address); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
