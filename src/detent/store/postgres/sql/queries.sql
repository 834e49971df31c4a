-- Every statement of the store. A line `-- name:` begins one. Names are in the schema `detent`, whatever the search path.

-- name: schema_version
SELECT coalesce(max(version), 0) FROM detent.migration

-- name: has_schema
SELECT to_regclass('detent.migration') IS NOT NULL

-- name: safety
SELECT has_table_privilege('detent.commit', 'UPDATE') OR has_table_privilege('detent.commit', 'DELETE'),
       current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off'

-- name: now
SELECT clock_timestamp()

-- name: project
SELECT id, public_id FROM detent.project WHERE name = %(name)s

-- name: add_project
INSERT INTO detent.project (name, public_id) VALUES (%(name)s, %(public_id)s) ON CONFLICT (name) DO NOTHING

-- name: sessions
SELECT name FROM detent.session WHERE project = %(project)s ORDER BY name

-- name: positions
SELECT s.name, (SELECT max(c.version) FROM detent.commit c WHERE c.session = s.id)
FROM detent.session s WHERE s.project = %(project)s ORDER BY s.name

-- name: session
SELECT id FROM detent.session WHERE project = %(project)s AND name = %(name)s

-- name: add_session
INSERT INTO detent.session (project, name, ordinal) VALUES (%(project)s, %(name)s, %(ordinal)s)
ON CONFLICT DO NOTHING RETURNING id

-- name: count_sessions
SELECT coalesce(max(ordinal), 0) FROM detent.session WHERE project = %(project)s

-- name: add_commit
INSERT INTO detent.commit (session, version, sum, line, attempt)
VALUES (%(session)s, %(version)s, %(sum)s, %(line)s, %(attempt)s)

-- name: attempt
SELECT attempt FROM detent.commit WHERE session = %(session)s AND version = %(version)s

-- name: append
INSERT INTO detent.commit (session, version, sum, line, attempt)
SELECT session, version + 1, %(sum)s, %(line)s, %(attempt)s
FROM detent.commit WHERE session = %(session)s AND version = %(after)s AND sum = %(before)s
ON CONFLICT (session, version) DO NOTHING

-- name: notify
SELECT pg_notify('detent', %(payload)s)

-- name: listen
LISTEN detent

-- name: read
SELECT version, sum, CASE WHEN version > %(after)s THEN line END
FROM detent.commit WHERE session = %(session)s AND version >= %(after)s ORDER BY version LIMIT %(limit)s

-- name: get
SELECT data FROM detent.document WHERE project = %(project)s AND name = %(name)s

-- name: put
INSERT INTO detent.document (project, name, data, executable)
VALUES (%(project)s, %(name)s, %(data)s, %(executable)s)
ON CONFLICT (project, name) DO UPDATE
SET data = excluded.data, executable = excluded.executable, written = excluded.written

-- name: put_new
INSERT INTO detent.document (project, name, data) VALUES (%(project)s, %(name)s, %(data)s)
ON CONFLICT (project, name) DO NOTHING

-- name: put_over
UPDATE detent.document SET data = %(data)s, written = nextval('detent.written')
WHERE project = %(project)s AND name = %(name)s AND data = %(before)s

-- name: delete
DELETE FROM detent.document WHERE project = %(project)s AND name = %(name)s

-- name: delete_same
DELETE FROM detent.document WHERE project = %(project)s AND name = %(name)s AND data = %(before)s

-- name: written
SELECT written FROM detent.document WHERE project = %(project)s AND name = %(name)s

-- name: names
SELECT name, executable FROM detent.document
WHERE project = %(project)s AND starts_with(name, %(prefix)s) ORDER BY name

-- name: of_sessions
SELECT s.name, d.data FROM detent.session s
JOIN detent.document d ON d.project = s.project AND d.name = s.name || '/' || %(name)s
WHERE s.project = %(project)s ORDER BY s.name

-- name: not_synced
SET LOCAL synchronous_commit TO off

-- Two that tell at once ask for the same position, and the second waits for the first. Behind a feed that was removed
-- positions go on with the time, so that a reader does not take new batches for old ones.
-- name: tell
INSERT INTO detent.feed (session, position, writer, number, is_head, lines)
SELECT %(session)s, coalesce(max(position), (extract(epoch FROM clock_timestamp()) * 1000)::bigint) + 1,
       %(writer)s, %(number)s, %(is_head)s, %(lines)s
FROM detent.feed WHERE session = %(session)s
ON CONFLICT (session, position) DO NOTHING
RETURNING position

-- name: has_told
SELECT 1 FROM detent.feed WHERE session = %(session)s AND writer = %(writer)s AND number = %(number)s

-- name: told
SELECT position, lines FROM detent.feed
WHERE session = %(session)s AND position > %(after)s AND (NOT is_head OR %(after)s = 0)
ORDER BY position LIMIT %(limit)s

-- name: remove_earlier
DELETE FROM detent.feed WHERE session = %(session)s AND position < %(position)s

-- name: remove_heads
DELETE FROM detent.feed WHERE session = %(session)s AND writer = %(writer)s AND is_head AND position < %(position)s

-- name: remove_longest_ago
DELETE FROM detent.feed USING (
    SELECT position, sum(octet_length(lines) + 64) OVER (ORDER BY position DESC) AS total
    FROM detent.feed WHERE session = %(session)s AND NOT is_head
) AS each
WHERE feed.session = %(session)s AND feed.position = each.position AND each.total > %(limit)s

-- name: remove_old
DELETE FROM detent.feed WHERE told_at < clock_timestamp() - make_interval(days => %(days)s)
