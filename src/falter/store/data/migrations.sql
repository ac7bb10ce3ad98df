-- Items, recipes, models, variants, responses, failures, runs and cells.
    CREATE TABLE items (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, body BLOB NOT NULL);
    CREATE TABLE recipes (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, body BLOB NOT NULL);
    CREATE TABLE models (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, body BLOB NOT NULL);
    CREATE TABLE variants (
        item INTEGER NOT NULL,
        recipe INTEGER NOT NULL,
        draw INTEGER NOT NULL,
        id BLOB NOT NULL,
        status TEXT NOT NULL,
        prompt BLOB NOT NULL,
        PRIMARY KEY (item, recipe, draw, id)
    ) WITHOUT ROWID;
    CREATE TABLE responses (
        key BLOB NOT NULL UNIQUE,
        model INTEGER NOT NULL,
        received_at REAL NOT NULL,
        body BLOB NOT NULL,
        checksum BLOB NOT NULL
    );
    CREATE TABLE failures (key BLOB NOT NULL, at REAL NOT NULL, reason TEXT NOT NULL);
    CREATE INDEX failures_by_key ON failures (key);
    CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        body BLOB NOT NULL,
        created_at REAL NOT NULL,
        planned INTEGER NOT NULL DEFAULT 0,
        finished_at REAL
    );
    CREATE TABLE cells (
        run INTEGER NOT NULL,
        panel INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        repeat INTEGER NOT NULL,
        item INTEGER NOT NULL,
        recipe INTEGER NOT NULL,
        draw INTEGER NOT NULL,
        variant BLOB NOT NULL,
        key BLOB NOT NULL,
        PRIMARY KEY (run, panel, sequence)
    ) WITHOUT ROWID;
-- Rewrites with their samples, sheets and reviews.
    CREATE TABLE rewrites (
        key BLOB NOT NULL,
        author TEXT NOT NULL,
        at REAL NOT NULL,
        body BLOB NOT NULL,
        checksum BLOB NOT NULL,
        UNIQUE (key, author)
    );
    CREATE TABLE samples (
        id BLOB NOT NULL UNIQUE,
        key BLOB NOT NULL,
        author TEXT NOT NULL,
        body BLOB NOT NULL
    );
    CREATE INDEX samples_by_key ON samples (key, author);
    CREATE TABLE sheets (
        row TEXT PRIMARY KEY,
        sheet TEXT NOT NULL,
        sample BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE reviews (
        sample BLOB NOT NULL,
        rater TEXT NOT NULL,
        at REAL NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (sample, rater)
    );
-- Studies.
    CREATE TABLE studies (
        number INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        created_at REAL NOT NULL,
        body BLOB NOT NULL
    );
-- A step says that it asks for reasoning, a model that it is simulated. Until then one
-- perturbation and one client did, and falter knew both by their names. Records are compact
-- JSON with their fields in order, and quotes in a text are escaped, so this finds them alone.
    UPDATE recipes SET body = CAST(replace(CAST(body AS TEXT),
        '{"name":"chain_of_thought",', '{"reasons":true,"name":"chain_of_thought",') AS BLOB);
    UPDATE models SET body = CAST(replace(CAST(body AS TEXT),
        '{"client":"simulated",', '{"simulated":true,"client":"simulated",') AS BLOB);
    UPDATE runs SET body = CAST(replace(replace(CAST(body AS TEXT),
        '{"name":"chain_of_thought",', '{"reasons":true,"name":"chain_of_thought",'),
        '{"client":"simulated",', '{"simulated":true,"client":"simulated",') AS BLOB);
-- Responses may have reasoning, a request id, reasoning and cached tokens. Those stored before
-- are read as they are; a falter before this one could not read the new ones, and says so.
    SELECT 1;
-- Whether a cell is the one that was planned; those of before have no mark.
    ALTER TABLE cells ADD COLUMN mark BLOB;
-- Runs may say where they came from; a falter before this one could not read them, and says so.
    SELECT 1;
-- Batches at providers, each written before it is handed in. `id` is the address that falter
-- gives it, `name` what the provider calls it.
    CREATE TABLE batches (
        number INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        model INTEGER NOT NULL,
        name TEXT,
        state TEXT NOT NULL,
        asked TEXT NOT NULL,
        said TEXT NOT NULL,
        created_at REAL NOT NULL,
        changed_at REAL NOT NULL
    );
    CREATE TABLE batch_keys (
        batch INTEGER NOT NULL,
        key BLOB NOT NULL,
        PRIMARY KEY (batch, key)
    ) WITHOUT ROWID;
    CREATE INDEX batches_of_a_key ON batch_keys (key);
-- Runs say how their panels are asked; a falter before this one could not read them.
    SELECT 1;
-- A table without rowids keeps rows of a kilobyte in overflow pages, of which half is unused.
    CREATE TABLE packed (
        item INTEGER NOT NULL,
        recipe INTEGER NOT NULL,
        draw INTEGER NOT NULL,
        id BLOB NOT NULL,
        status TEXT NOT NULL,
        prompt BLOB NOT NULL
    );
    INSERT INTO packed SELECT item, recipe, draw, id, status, pack_whole_record(prompt)
        FROM variants ORDER BY item, recipe, draw, id;
    DROP TABLE variants;
    ALTER TABLE packed RENAME TO variants;
    CREATE UNIQUE INDEX variants_by_place ON variants (item, recipe, draw, id);
