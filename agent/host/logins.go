package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

const sessionInterface = "org.freedesktop.login1.Session"

// maxSessions is the most sessions that are looked at. It takes less than a second.
const maxSessions = 256

// Login is the login of a person, on a terminal or from another host.
type Login struct {
	// User is the name of the account.
	User string
	// Terminal is the terminal, such as pts/0. It may be empty.
	Terminal string
	// From is the other host, or empty if the login is local.
	From string
}

// Logins lists the people who are logged in. Services, timers and login screens are left out.
func (l Logind) Logins(ctx context.Context) ([]Login, error) {
	conn, err := l.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	var sessions []struct {
		ID   string
		UID  uint32
		User string
		Seat string
		Path dbus.ObjectPath
	}
	m := manager{conn.Object(logindName, logindPath)}
	if err := m.call(ctx, logindInterface+".ListSessions", nil, &sessions); err != nil {
		return nil, err
	}
	var people []Login
	for _, s := range sessions[:min(len(sessions), maxSessions)] {
		properties := map[string]dbus.Variant{}
		err := manager{conn.Object(logindName, s.Path)}.call(ctx, propertiesInterface+".GetAll", []any{sessionInterface}, &properties)
		if _, gone := errors.AsType[*RefusedError](err); gone {
			continue // The session has ended since.
		}
		if err != nil {
			return nil, fmt.Errorf("session %s: %w", s.ID, err)
		}
		text := func(name string) string { value, _ := properties[name].Value().(string); return value }
		if text("Class") == "user" && text("State") != "closing" && text("TTY")+text("RemoteHost") != "" {
			people = append(people, Login{User: s.User, Terminal: text("TTY"), From: text("RemoteHost")})
		}
	}
	if len(people) == 0 && len(sessions) > maxSessions {
		return nil, fmt.Errorf("logind lists %d sessions, more than %d", len(sessions), maxSessions)
	}
	return people, nil
}
