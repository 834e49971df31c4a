-- Journals and shared documents. The owner of the schema migrates; the run-time role never changes a commit.

CREATE TABLE detent.project (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text COLLATE "C" NOT NULL UNIQUE,
    -- The id that signed statements name.
    public_id   text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE detent.session (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project     bigint NOT NULL REFERENCES detent.project,
    name        text COLLATE "C" NOT NULL,
    -- The n-th session of its project. Two machines that create at the same moment ask for the same one.
    ordinal     integer NOT NULL,
    UNIQUE (project, name),
    UNIQUE (project, ordinal)
);

-- The primary key is the fence: of two commits behind the same one, the second finds its place taken.
CREATE TABLE detent.commit (
    session     bigint NOT NULL,
    version     integer NOT NULL,
    sum         text COLLATE "C" NOT NULL,
    line        bytea NOT NULL,
    -- Tells the writer of a commit apart from another one with the same bytes, after a lost answer.
    attempt     uuid NOT NULL,
    PRIMARY KEY (session, version)
);

CREATE SEQUENCE detent.written;

CREATE TABLE detent.document (
    project     bigint NOT NULL REFERENCES detent.project,
    name        text COLLATE "C" NOT NULL,
    data        bytea NOT NULL,
    executable  boolean NOT NULL DEFAULT false,
    written     bigint NOT NULL DEFAULT nextval('detent.written'),
    PRIMARY KEY (project, name)
);
