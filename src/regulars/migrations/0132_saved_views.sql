-- oldest server: 0080
-- oldest worker: 0125
-- Views of analytics that a user saved under a name: the page and its address without the path.

CREATE TABLE saved_views (
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    page text NOT NULL,
    name text NOT NULL,
    query text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, user_id, page, name)
);
