-- oldest server: 0080
-- oldest worker: 0145
-- outside a transaction
-- The step of an answer to a customer held the email address of its author; now it is an id. The author stays with the reply.
-- A thousand answers are rewritten in each transaction, and the block may be run again after it broke off.
DO $$
DECLARE
    organization uuid;
BEGIN
    FOR organization IN SELECT id FROM organizations LOOP
        LOOP
            WITH answers AS (
                SELECT id, origin_id, regexp_replace(step, ' [^ ]*$', '') AS author FROM texts
                WHERE organization_id = organization AND origin_kind = 'answer' AND step LIKE '% %'
                ORDER BY origin_id, id
                LIMIT 1000
            ), authors AS (
                UPDATE replies SET decided_by = answers.author FROM answers
                WHERE replies.organization_id = organization AND replies.id = answers.origin_id
                  AND replies.decided_by IS NULL
            )
            UPDATE texts SET step = answers.id::text FROM answers
            WHERE texts.organization_id = organization AND texts.id = answers.id;
            EXIT WHEN NOT FOUND;
            COMMIT;
        END LOOP;
    END LOOP;
END $$;
