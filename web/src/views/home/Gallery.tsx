import { Button, Card, Text, Title } from "@mantine/core";

/** Examples to begin with: a workflow with its data, ready to run. */
export function Gallery({
  examples,
  open,
}: {
  examples: Record<string, string>;
  open: (name: string) => void;
}) {
  if (Object.keys(examples).length === 0) return null;
  return (
    <section aria-labelledby="gallery">
      <Title order={2} size="h4" id="gallery" mb="xs">
        Examples
      </Title>
      <div className="gallery">
        {Object.entries(examples).map(([name, story]) => (
          <Card key={name} withBorder padding="sm">
            <Text fw={600}>{name}</Text>
            <Text size="sm" c="dimmed" style={{ flex: 1 }}>
              {story}
            </Text>
            <Button
              variant="default"
              size="xs"
              mt="xs"
              aria-label={`Open the example “${name}”`}
              onClick={() => open(name)}
            >
              Open
            </Button>
          </Card>
        ))}
      </div>
    </section>
  );
}
