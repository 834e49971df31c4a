-- The feeds of runs, for viewers on other machines. They are for display: rows are removed when a run starts, when a
-- feed is too long, and after some days.

CREATE TABLE detent.feed (
    session     bigint NOT NULL,
    -- Batches of one session become visible in the order of their positions, so that a reader misses none.
    position    bigint NOT NULL,
    -- A process, and the number of its batch: a batch that is sent twice is there once.
    writer      uuid NOT NULL,
    number      integer NOT NULL,
    -- The lines that a later reader needs when older rows of the writer are gone.
    is_head     boolean NOT NULL,
    lines       bytea NOT NULL,
    told_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session, position)
);
CREATE INDEX feed_told_at ON detent.feed (told_at);
