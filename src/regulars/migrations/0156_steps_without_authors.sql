-- oldest server: 0080
-- oldest worker: 0145
-- outside a transaction
-- The step of an answer to a customer held the email address of its author; now it is an id, and the text has its author.
-- A thousand answers are rewritten in each transaction, and the block may be run again after it broke off.
DO $$
DECLARE
    organization uuid;
BEGIN
    FOR organization IN SELECT id FROM organizations LOOP
        LOOP
            WITH answers AS (
                SELECT texts.id, users.id AS author_id FROM texts
                LEFT JOIN users ON users.email = regexp_replace(texts.step, ' [^ ]*$', '')
                WHERE texts.organization_id = organization AND texts.origin_kind = 'answer' AND texts.step LIKE '% %'
                ORDER BY texts.origin_id, texts.id
                LIMIT 1000
            )
            UPDATE texts SET step = answers.id::text, author_id = answers.author_id FROM answers
            WHERE texts.organization_id = organization AND texts.id = answers.id;
            EXIT WHEN NOT FOUND;
            COMMIT;
        END LOOP;
    END LOOP;
END $$;
