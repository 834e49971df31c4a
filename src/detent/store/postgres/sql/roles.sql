-- The privileges of the run-time role. Run it as the owner of the schema, after the migrations, with the role's name:
--   psql -v role=detent_run -f roles.sql
-- It may add commits and sessions, and can neither change nor remove one.

GRANT USAGE ON SCHEMA detent TO :"role";
GRANT SELECT ON detent.migration TO :"role";
GRANT SELECT, INSERT ON detent.project, detent.session, detent.commit TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE ON detent.document TO :"role";
GRANT SELECT, INSERT, DELETE ON detent.feed TO :"role";
GRANT USAGE ON SEQUENCE detent.written TO :"role";
