-- Finds what the index of a new session may show, however large the memory is.

-- The latest observations of each type in a project that still hold.
create index observations_holding on observations (project_id, type, at)
where superseded_by is null and retracted is null;

-- What the user laid down in a project.
create index observations_by_user on observations (project_id, at)
where origin = 'user' and superseded_by is null and retracted is null;

-- A hook knows a session by the host's id alone.
create index sessions_by_host_id on sessions (host_session_id);
